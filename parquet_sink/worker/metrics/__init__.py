"""What happens and how things stand, as figures for Prometheus and as traces."""
