"""How clients sign in and whom they trust: Java's settings of TLS and SASL become librdkafka's."""
