"""Screens: they compose widgets, bind data down and carry commands out."""
