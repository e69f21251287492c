// Looks at every page of the built site in Chromium, on a phone and on a desk, light and dark, and at every link in it.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'

import { chromium } from 'playwright-core'

import { folder, read } from './pages.mjs'
import { slug } from './slug.mjs'

const base = process.env.SITE_BASE || '/reprise/'
const dist = path.resolve('dist')
const shots = path.resolve('shots')
const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const widths = [1280, 375]
const schemes = ['light', 'dark']
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' }

const faults = []
const fault = (where, text) => { faults.push(`${where}: ${text}`) }

// find returns the file that GitHub Pages serves at an address.
function find(pathname) {
  if (!pathname.startsWith(base)) return undefined
  const file = path.join(dist, decodeURIComponent(pathname.slice(base.length)))
  return [file, `${file}.html`, path.join(file, 'index.html')].find((name) => name.startsWith(dist) && fs.existsSync(name) && fs.statSync(name).isFile())
}

const server = http.createServer((request, response) => {
  const file = find(new URL(request.url, 'http://site').pathname)
  response.writeHead(file ? 200 : 404, { 'content-type': types[path.extname(file ?? '404.html')] ?? 'application/octet-stream' })
  fs.createReadStream(file ?? path.join(dist, '404.html')).pipe(response)
})
await new Promise((listening) => { server.listen(0, '127.0.0.1', listening) })
const origin = `http://127.0.0.1:${server.address().port}`

const names = fs.readdirSync(dist, { recursive: true }).filter((name) => name.endsWith('.html')).sort()
const address = (name) => base + name.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')

// Links and anchors, without a browser.
const html = new Map(names.map((name) => [path.join(dist, name), fs.readFileSync(path.join(dist, name), 'utf8').replaceAll('&amp;', '&')]))
const ids = new Map([...html].map(([file, text]) => [file, new Set([...text.matchAll(/\sid="([^"]+)"/g)].map((m) => m[1]))]))
for (const name of names) {
  for (const [, link] of html.get(path.join(dist, name)).matchAll(/<a [^>]*?href="([^"]+)"/g)) {
    const to = new URL(link, origin + address(name))
    if (to.origin !== origin) continue
    const file = find(to.pathname)
    if (!file) fault(name, `links to ${link}, which is not there`)
    else if (to.hash && !ids.get(file)?.has(decodeURIComponent(to.hash.slice(1)))) fault(name, `links to ${link}, and the page has no such anchor`)
  }
}

// Every heading has the anchor that it has on GitHub, and so has every code of a problem.
for (const name of fs.readdirSync(folder, { recursive: true }).filter((file) => file.endsWith('.md') && file !== 'index.md')) {
  const text = fs.readFileSync(path.join(folder, name), 'utf8').replace(/^(```+)[^]*?^\1$/gm, '')
  const seen = new Map()
  for (const [, heading] of text.matchAll(/^#{1,6} (.*)$/gm)) {
    const anchor = slug(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[^>]*>|[`*]/g, ''))
    const again = seen.get(anchor) ?? 0
    seen.set(anchor, again + 1)
    const id = again ? `${anchor}-${again}` : anchor
    if (!ids.get(path.join(dist, name.replace(/md$/, 'html')))?.has(id)) fault(name, `has no anchor ${id}`)
  }
}
const problems = read('core/protocol/problem.go').match(/blob\/main\/docs\/(.*)\.md#"/)[1]
for (const [, code] of read('core/protocol/problemtable.go').matchAll(/^\tCode\w+\s+Code = "(.*)"/gm)) {
  if (!ids.get(path.join(dist, `${problems}.html`)).has(code)) fault(problems, `has no anchor ${code}, which responses name`)
}

const program = ['chromium', 'chromium-browser', 'google-chrome'].map((name) => {
  try { return execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim() } catch { return '' }
}).find(Boolean)
if (!program) throw new Error('chromium is not installed')
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-dev-shm-usage'] }) // in containers, as root
fs.rmSync(shots, { recursive: true, force: true })

async function open(context, name) {
  const page = await context.newPage()
  page.on('pageerror', (error) => fault(name, `throws ${error.message}`))
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type()) && !(name === '404.html' && message.text().includes('404'))) fault(name, `logs ${message.text()}`) })
  page.on('requestfailed', (request) => { if (request.failure()?.errorText !== 'net::ERR_ABORTED') fault(name, `cannot load ${request.url()}`) })
  await page.route((url) => url.origin !== origin && url.protocol !== 'data:', (route) => {
    fault(name, `asks another host for ${route.request().url()}`)
    return route.abort()
  })
  await page.goto(origin + (name === '404.html' ? `${base}nowhere` : address(name)), { waitUntil: 'networkidle' })
  return page
}

async function look(context, name) {
  const page = await open(context, name)
  await page.evaluate(axe)
  await page.addStyleTag({ content: '*, ::before, ::after { transition: none !important; animation: none !important }' })
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 })
    for (const scheme of schemes) {
      const where = `${name} at ${width} px, ${scheme}`
      await page.emulateMedia({ colorScheme: scheme })
      await page.waitForFunction((dark) => document.documentElement.classList.contains('dark') === dark, scheme === 'dark')
      const { wide, violations } = await page.evaluate(async () => ({
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        violations: (await window.axe.run()).violations.map(({ id, help, nodes }) => `${id} (${help}), ${nodes.length} times, as in ${nodes[0].html.slice(0, 200)} ${nodes[0].any[0]?.message ?? ''}`),
      }))
      if (wide > 0) fault(where, `scrolls sideways, by ${wide} px`)
      violations.forEach((text) => fault(where, `axe: ${text}`))
      const height = await page.evaluate(() => Math.min(document.documentElement.scrollHeight, 4000))
      await page.screenshot({ path: path.join(shots, String(width), scheme, name.replace(/html$/, 'png')), fullPage: true, clip: { x: 0, y: 0, width, height } })
    }
  }
  await page.close()
}

// The markup of VitePress's search box breaks these two rules.
const ofVitePress = { rules: { 'label-content-name-mismatch': { enabled: false }, 'nested-interactive': { enabled: false } } }

// search looks for a word as a reader does, and follows the first result.
async function search(context, width, word) {
  const where = `search at ${width} px`
  const page = await open(context, 'index.html')
  await page.setViewportSize({ width, height: 900 })
  await page.locator('#local-search button, .VPNavBarSearch button').first().click()
  await page.locator('.search-input').fill(word)
  await page.locator('.results .result').first().waitFor()
  await page.evaluate(axe)
  for (const scheme of schemes) {
    await page.emulateMedia({ colorScheme: scheme })
    const { violations } = await page.evaluate((options) => window.axe.run('.VPLocalSearchBox', options), ofVitePress)
    violations.forEach(({ help, nodes }) => fault(`${where}, ${scheme}`, `axe: ${help}, as in ${nodes[0].html.slice(0, 300)}`))
    await page.screenshot({ path: path.join(shots, String(width), scheme, 'search.png') })
  }
  const found = await page.locator('.results .result').first().getAttribute('href')
  await page.locator('.results .result').first().click()
  await page.waitForURL((url) => url.pathname === new URL(found, origin).pathname)
  await page.locator('.VPLocalSearchBox').waitFor({ state: 'detached' })
  if (!(await page.locator('main').innerText()).toLowerCase().includes(word)) fault(where, `"${word}" led to ${found}, which does not say it`)
  await page.close()
}

const context = await browser.newContext()
const queue = names.map((name) => () => look(context, name)).concat(widths.map((width) => () => search(context, width, 'retention')))
await Promise.all(Array.from({ length: Number(process.env.SITE_PAGES || 4) }, async () => {
  for (let next = queue.shift(); next; next = queue.shift()) await next().catch((error) => fault('check', error.stack))
}))
await browser.close()
server.close()

console.log(`${names.length} pages, ${widths.join(' and ')} px, ${schemes.join(' and ')}: ${faults.length} faults; pictures are in .cache/site/shots`)
if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exit(1)
}
