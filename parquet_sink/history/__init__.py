"""What a connector sent, for those who ask later: kept beside its state, bounded, and never needed to go on."""
