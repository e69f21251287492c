module github.com/reprise-go/reprise/servers

go 1.25.0
