// Command consumer consumes payments from NATS JetStream.
package main

func main() {}
