// An order is a line with its key in the file EFFECTS. The answer differs from run to
// run, and every other one comes in chunks.
const { appendFileSync } = require('node:fs')
const { randomBytes } = require('node:crypto')
const { setTimeout: sleep } = require('node:timers/promises')
const express = require('express')

const app = express()
app.post('/orders', async (req, res) => {
  await sleep(Math.random() * 10)
  appendFileSync(process.env.EFFECTS, req.get('Idempotency-Key') + '\n')
  await sleep(Math.random() * 10)
  res.status(201).type('application/octet-stream')
  if (Math.random() < 0.5) return res.send(randomBytes(512))
  res.write(randomBytes(256))
  await sleep(Math.random() * 10)
  res.end(randomBytes(256))
})
const [host, port] = process.env.LISTEN.split(':')
app.listen(Number(port), host)
