"""What is measured. A section answers a list of steps; the steps run one after the other, never two at once."""
