"""Why two numbers differ: settings compared, runs scored in other ways."""
