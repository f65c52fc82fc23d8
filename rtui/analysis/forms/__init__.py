"""Files of a report: text, JSON, Markdown, CSV and HTML."""
