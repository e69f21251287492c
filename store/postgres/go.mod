module github.com/reprise-go/reprise/store/postgres

go 1.25.0
