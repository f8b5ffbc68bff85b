"""The version of this library, read by setup.cfg."""

__version__ = "0.1.0"
