// Makes the pages of the site: copies of docs/, and a home page of the parts of README.md.
import fs from 'node:fs'
import path from 'node:path'

const { dirname, join, normalize } = path.posix

export const repository = process.env.REPOSITORY ?? path.resolve('../..') // make runs this in .cache/site
export const github = 'https://github.com/reprise-go/reprise'
export const folder = path.resolve('pages')

const decisions = 'docs/engineering/adr'
const groups = ['guides', 'reference', 'operate', 'engineering'] // folders of docs/

export const read = (file) => fs.readFileSync(join(repository, file), 'utf8')
const exists = (file) => fs.existsSync(join(repository, file))
const plain = (text) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '').trim()
const capital = (text) => text[0].toUpperCase() + text.slice(1)
const title = (file) => plain(read(file).match(/^# (.*)/m)?.[1] ?? path.basename(file, '.md')).split(': ')[0]
const documents = fs.readdirSync(join(repository, 'docs'), { recursive: true }).map((name) => `docs/${name.replaceAll('\\', '/')}`).sort()
const outside = new Map([['cmd/reprise/README.md', 'reference/program.md']]) // pages of files that are not in docs/
const markdown = documents.filter((name) => name.endsWith('.md')).concat(...outside.keys())

// page returns where the page of a file, or folder, of the repository is below the site's root.
export function page(file) {
  if (file === 'README.md' || file === '.') return 'index.md'
  if (file === 'docs/README.md' || file === 'docs') return 'docs.md'
  if (file === decisions) return 'engineering/adr/index.md'
  if (markdown.includes(`${file}/README.md`)) file += '/README.md'
  if (outside.has(file)) return outside.get(file)
  return markdown.includes(file) ? file.slice('docs/'.length).replace(/README\.md$/, 'index.md') : undefined
}

const sources = new Map(['README.md', ...markdown].map((file) => [page(file), file]))
export const source = (name) => sources.get(name) ?? decisions // of a page

// resolve returns the address of a link of a file: another page, or the file on GitHub.
export function resolve(link, from) {
  const own = `${github}/blob/main/` // READMEs of modules, which pkg.go.dev shows, too, have such links
  if (!link.startsWith(own) && /^([a-z][a-z0-9+.-]*:|#)/i.test(link)) return link
  const [target, hash] = link.split('#')
  const at = target.startsWith(own) ? target.slice(own.length) : join(from === decisions ? from : dirname(from), target)
  const file = normalize(at).replace(/\/$/, '')
  const anchor = hash ? `#${hash}` : ''
  if (page(file)) return `/${page(file)}${anchor}`
  if (!exists(file)) throw new Error(`${from} links to ${link}, which is not there`)
  const kind = fs.statSync(join(repository, file)).isDirectory() ? 'tree' : 'blob'
  return `${github}/${kind}/main/${file}${anchor}`
}

const links = (text, from) => [...text.matchAll(/\]\(([^)\s]+)\)/g)].map((m) => resolve(m[1], from)).filter((to) => to.startsWith('/'))
const need = (value, what) => value || fail(`README.md has no ${what}, which the home page shows`)
const fail = (text) => { throw new Error(text) }
const section = (readme, heading) => need(readme.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)), `section "${heading}"`)

export const sentence = plain(need(read('README.md').match(/^# .*\n\n(.+)/), 'sentence below its title')[1])

// home puts the title, the first sentences and the guarantees of README.md into the frame of a home page.
function home() {
  const readme = read('README.md')
  const [, name, first, second, rest] = need(readme.match(/^# (.*)\n\n(.+)\n\n(.+)\n\n([^]*)/), 'title and two sentences')
  const guarantees = section(readme, 'What it guarantees').match(/^\* \*\*.+\*\*: .+$/gm)
  const [, text, tagline] = need(plain(first).match(new RegExp(`^${name} (.+?): (.+)`)), 'first sentence of two parts')
  const start = links(section(readme, 'Read on').split('\n').find((line) => line.startsWith('* **Start**')) ?? '', 'README.md')
  const frame = {
    layout: 'home',
    title: name,
    titleTemplate: capital(text),
    hero: {
      name,
      text,
      tagline: `${capital(tagline)} ${plain(second).replace(/^It /, `${name} `)}`,
      actions: need(start, 'line "Start"').slice(0, 2).map((link, i) => ({ theme: i ? 'alt' : 'brand', text: title(`docs${link}`), link }))
        .concat({ theme: 'alt', text: 'GitHub', link: github }),
    },
    features: need(guarantees, 'guarantees').map((line) => line.match(/\*\*(.+)\*\*: (.+)/)).map(([, title, details]) => ({ title, details: capital(plain(details)) })),
  }
  return `---\n${JSON.stringify(frame)}\n---\n\n${rest}`
}

const list = () => `# Decisions\n\nWhy Reprise is built the way it is: one page for each lasting decision.\n\n${markdown
  .filter((file) => file.startsWith(`${decisions}/`)).map((file) => `* [${title(file)}](${path.basename(file)})\n`).join('')}`

// prepare writes what changed, so that a running server reloads no more.
export function prepare() {
  const files = new Map([['index.md', home()], ['engineering/adr/index.md', list()]])
  for (const file of markdown) if (!files.has(page(file))) files.set(page(file), read(file))
  for (const file of documents) if (/\.(svg|png)$/.test(file)) files.set(file.slice('docs/'.length), read(file))
  for (const name of fs.existsSync(folder) ? fs.readdirSync(folder, { recursive: true }) : []) {
    const file = path.join(folder, name)
    if (fs.statSync(file).isFile() && !files.has(name.replaceAll('\\', '/'))) fs.rmSync(file)
  }
  for (const [name, text] of files) {
    const file = path.join(folder, name)
    if (fs.existsSync(file) && fs.readFileSync(file, 'utf8') === text) continue
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  }
}

// sidebar has a group for each folder, in the order of docs/README.md; pages that it does not name are last.
export function sidebar() {
  const order = ['docs/README.md', 'docs/engineering/README.md'].filter(exists).flatMap((file) => links(read(file), file)).map((link) => link.slice(1).split('#')[0])
  const rank = (name) => (order.indexOf(name) + 1 || order.length + 1)
  return groups.map((group) => {
    const names = markdown.map(page).filter((name) => dirname(name) === group && path.basename(name) !== 'index.md').sort((a, b) => rank(a) - rank(b))
    const items = names.map((name) => ({ text: title(source(name)), link: `/${name}` }))
    if (group === 'engineering') {
      const pages = markdown.filter((file) => file.startsWith(`${decisions}/`))
      items.push({ text: 'Decisions', link: '/engineering/adr/', collapsed: true, items: pages.map((file) => ({ text: title(file), link: `/${page(file)}` })) })
    }
    return { text: capital(group), items }
  })
}
