"""Plug-ins that few people need. The core imports none of them and finds them by entry points."""
