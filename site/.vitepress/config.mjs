import path from 'node:path'

import { renderMermaidSVG } from 'beautiful-mermaid'
import { defineConfig } from 'vitepress'

import { folder, github, prepare, repository, resolve, sentence, sidebar, source } from '../pages.mjs'
import { slug } from '../slug.mjs'

prepare()

const groups = sidebar()
const escape = (text) => text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;')
const icon = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M26 16a10 10 0 1 1-3-7m4-5v6h-6" fill="none" stroke="#3a6ea5" stroke-width="4"/></svg>'

export default defineConfig({
  title: 'Reprise',
  titleTemplate: ':title · Reprise',
  description: sentence,
  lang: 'en',
  base: process.env.SITE_BASE || '/reprise/',
  srcDir: folder,
  outDir: 'dist',
  cacheDir: 'vite',
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  markdown: {
    anchor: { slugify: slug },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: repositoryMarkdown,
  },
  themeConfig: {
    nav: groups.map((group) => ({ text: group.text, link: group.items[0].link, activeMatch: `^${group.items[0].link.replace(/[^/]*$/, '')}` })),
    sidebar: groups,
    outline: { level: [2, 3] },
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: github, ariaLabel: 'The repository on GitHub' }],
    notFound: { title: 'No such page', quote: 'It may have moved: search for it, or start from the home page.', linkLabel: 'Home', linkText: 'Home' },
    editLink: { pattern: ({ frontmatter }) => frontmatter.source, text: 'Edit this page on GitHub' },
  },
  transformPageData(page) {
    const file = source(page.relativePath)
    page.frontmatter.source = `${github}/edit/main/${file}`
    if (!file.endsWith('.md')) page.frontmatter.editLink = false // a list of a folder
  },
  vite: { plugins: [follow()], build: { chunkSizeWarningLimit: 2000 } }, // the index of the search
})

// repositoryMarkdown gives the Markdown of the repository the form of the site: links to files outside of the pages lead to
// GitHub, tables scroll inside of themselves, diagrams are drawn, and a picture follows the switch of the site.
function repositoryMarkdown(md) {
  md.core.ruler.push('repository', ({ tokens, env }) => {
    const from = source(env.relativePath)
    let heading = ''
    for (const [i, token] of tokens.entries()) {
      if (token.type === 'heading_open') heading = tokens[i + 1].children.filter(({ type }) => type !== 'html_inline').map(({ content }) => content).join('').trim()
      token.meta = { ...token.meta, heading }
      if (token.type === 'code_block') Object.assign(token, { type: 'fence', info: 'text' }) // so that it scrolls too
      if (token.type === 'th_open' && !tokens[i + 1].content) token.tag = tokens[i + 2].tag = 'td'
      for (const child of token.children ?? []) {
        if (child.type === 'link_open') child.attrSet('href', resolve(child.attrGet('href'), from))
      }
    }
  })
  const rules = md.renderer.rules
  const fence = rules.fence
  rules.fence = (tokens, i, ...rest) => (tokens[i].info.trim() === 'mermaid' ? diagram(tokens[i]) : fence(tokens, i, ...rest))
  const code = rules.code_inline
  rules.code_inline = (...args) => code(...args).replace(/(?<=\w)[_/.=](?=\w)/g, '$&<wbr>') // long names break there
  const table = rules.table_open
  rules.table_open = (tokens, i, options, env, self) =>
    `<div class="table" tabindex="0" role="group" aria-label="${escape(`Table: ${tokens[i].meta.heading}`)}">${table ? table(tokens, i, options, env, self) : self.renderToken(tokens, i, options)}`
  rules.table_close = () => '</table></div>\n'
  const html = rules.html_block
  rules.html_block = (tokens, i, ...rest) => html(tokens, i, ...rest).replace(
    /<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)"[^>]*>\s*<\/picture>/g,
    (_, dark, alt, light) => `<img class="light-only" alt="${alt}" src="./${light}"><img class="dark-only" alt="${alt}" src="./${dark}" loading="lazy">`,
  )
}

// diagram draws at build time. The renderer's style sheet loads a font; ours does not.
function diagram({ content, meta }) {
  const svg = renderMermaidSVG(content, { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', muted: 'var(--vp-c-text-2)', line: 'var(--vp-c-text-2)', transparent: true, padding: 16 })
    .replace(/@import [^;]*&amp;[^;]*;[^;]*;|@import [^;]*;/, '').replace(/'Inter', /, '').replace('<svg ', '<svg aria-hidden="true" ')
  return `<div class="diagram" tabindex="0" role="img" aria-label="${escape(`Diagram: ${meta.heading}`)}" v-html="${escape(JSON.stringify(svg))}"></div>\n`
}

// follow makes the pages again when their sources change, while the site is served.
function follow() {
  return {
    name: 'follow',
    configureServer({ watcher }) {
      watcher.add([path.join(repository, 'docs'), path.join(repository, 'README.md')])
      watcher.on('change', (file) => file.endsWith('.md') && !file.startsWith(folder) && prepare())
    },
  }
}
