"""The parts that any screen can use: styled lines, views, tables, commands, themes, the terminal."""
