module github.com/reprise-go/reprise/conformance/cmd

go 1.26.0
