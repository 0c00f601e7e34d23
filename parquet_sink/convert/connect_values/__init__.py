"""Values as Kafka Connect's `Values.parseString` reads them from text: headers, and literals of InsertHeader."""
