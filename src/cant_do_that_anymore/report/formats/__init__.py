"""Formats of tables besides the terminal's, each a module here."""
