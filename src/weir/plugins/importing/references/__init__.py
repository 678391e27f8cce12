"""Collections by reference, and files or folders of another layout, kept in the home folder in the layout of Weir."""
