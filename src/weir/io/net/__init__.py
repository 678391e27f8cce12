"""Downloads and archives from elsewhere, never trusted."""
