"""Training on several devices of one machine; holds nothing yet."""

__all__: list[str] = []
