"""The plugin's table of contents."""
