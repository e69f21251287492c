// Orders takes money for every POST /orders that reaches it, and knows nothing of the
// header Idempotency-Key. A line of CHARGES, or of standard output, is a charge.
const { appendFileSync } = require('node:fs')
const http = require('node:http')

let order = 0

http.createServer((req, res) => {
  let body = ''
  req.on('data', (part) => { body += part })
  req.on('end', () => {
    order++
    appendFileSync(process.env.CHARGES || '/dev/stdout', `process ${process.pid} charges ${body}\n`)
    setTimeout(() => {
      const answer = JSON.stringify({ order, process: process.pid, time: Date.now() })
      res.writeHead(201, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(answer) })
      res.end(answer)
    }, Number(process.env.DELAY || 0)) // the bank takes its time
  })
}).listen(Number(process.env.PORT || 3000), '127.0.0.1')
