"""What any screen could use: styled lines, views, tables, commands, themes, the terminal."""
