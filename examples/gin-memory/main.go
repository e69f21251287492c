// Gin-memory takes orders, on Gin with records in memory; the README shows the body of
// main.
package main

import (
	"log"
	"net/http"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	reprisegin "github.com/reprise-go/reprise/adapters/gin"
	"github.com/reprise-go/reprise/core/memstore"
	"github.com/reprise-go/reprise/core/protocol"
)

func main() {
	guard, err := protocol.New(memstore.New(), protocol.Config{Required: true})
	if err != nil {
		log.Fatal(err)
	}
	var orders atomic.Int64
	router := gin.Default()
	router.POST("/orders", reprisegin.Middleware(guard, reprisegin.Unscoped), func(c *gin.Context) {
		c.JSON(http.StatusCreated, gin.H{"order": orders.Add(1)})
	})
	log.Fatal(router.Run("127.0.0.1:8080"))
}
