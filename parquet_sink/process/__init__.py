"""What every process of the program needs: log lines, signals, standard streams, children that end with it."""
