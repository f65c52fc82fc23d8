"""The Analyse screen and its panels."""
