// A line of EFFECTS is the path of a request and its tenant, as Node reads them.
const { appendFileSync } = require('node:fs')
const http = require('node:http')

const [host, port] = process.env.LISTEN.split(':')
http.createServer((req, res) => {
  const path = new URL(decodeURIComponent(new URL(req.url, 'http://service').pathname), 'http://service').pathname
  appendFileSync(process.env.EFFECTS, `${path} ${req.headers['x-tenant'] ?? ''}\n`)
  res.writeHead(201).end()
}).listen(Number(port), host)
