"""Values: frozen arrays without any input or output."""
