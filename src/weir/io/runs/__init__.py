"""Rankings and judgments: files and frames of any format to columns, and back."""
