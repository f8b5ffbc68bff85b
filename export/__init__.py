"""From a trained model to something that can be served and searched."""

from tf_samtone.export.saved_model import export_saved_model

__all__ = ["export_saved_model"]
