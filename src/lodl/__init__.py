"""lodl."""
