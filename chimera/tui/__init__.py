"""The full-screen terminal app. The only folder that imports Textual; its state is plain Python."""

__all__: list[str] = []
