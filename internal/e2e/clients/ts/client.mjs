// Drives a real hb-rest with the TypeScript SDK's client, as most MCP hosts do:
//
//	node client.mjs HB-REST UPSTREAM TOKEN-FILE BRIDGE-URL KIND
//
// KIND is one of those of connect.mjs. Each step prints a line; the first that
// does not hold ends the program with 1.
import assert from 'node:assert/strict'
import * as sdk from './e2e-connect.mjs'

const [program, upstream, tokenFile, bridge, kind] = process.argv.slice(2)
const meta = ['wrap_create', 'wrap_delete', 'wrap_derive', 'wrap_get', 'wrap_list', 'wrap_reload', 'wrap_run', 'wrap_secret_list', 'wrap_test', 'wrap_update']

const step = (words) => console.log('ok - ' + words)

// A connection of one MCP client, with the notices of a changed list counted.
async function connect() {
  const notices = { count: 0, wake: () => {} }
  const client = await sdk.connect(kind, { program, tokenFile, bridge, changed: () => { notices.count++; notices.wake() } })
  return { client, notices }
}

const one = await connect()
const two = await connect()

// The notice that makes the count n; resolves at once when it has come already.
function noticed({ notices }, n) {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no notice ${n} in 20 s`)), 20000)
    notices.wake = () => { if (notices.count >= n) { clearTimeout(late); resolve() } }
    notices.wake()
  })
}

const names = async ({ client }) => (await client.listTools()).tools.map((t) => t.name).sort()
async function call({ client }, name, args, isError = false) {
  const r = await client.callTool({ name, arguments: args })
  assert.equal(r.isError ?? false, isError, JSON.stringify(r))
  return r
}
const text = async (...args) => (await call(...args)).content[0].text

assert.equal(one.client.getServerVersion().name, 'hb-rest')
assert.equal(one.client.getServerCapabilities().tools.listChanged, true)
step('initialize')

assert.deepEqual(await names(one), meta)
assert.deepEqual(await names(two), meta)
step('tools/list: the ten tools')

const wrapper = {
  schemaVersion: 1, id: 'shop.search', name: 'Product search', description: 'Search the shop.',
  request: { method: 'GET', url: upstream + '/search', query: { q: '{{words}}', page: '{{page}}', tag: '{{tags}}', kind: '{{kind}}', letters: '{{letters}}' } },
  // What strict clients refuse when it is shown as it is.
  inputSchema: {
    type: 'object', $schema: 'https://json-schema.org/draft/2020-12/schema',
    properties: {
      words: { type: 'string' }, page: { type: ['integer', 'null'], format: 'int64', default: 1 }, tags: { type: 'array' },
      kind: { enum: [1, 2, null] }, letters: { type: 'string', pattern: '(?i)^[a-z]+\\z' },
    },
    required: ['words', 'page'], additionalProperties: false,
  },
  response: { schemaVersion: 1, select: '$.products[*]', mode: 'table', fields: { ID: 'id', Name: 'title' }, record: { id: 'id', title: 'title' } },
  exposeAsTool: true,
}
assert.match(await text(one, 'wrap_create', { wrapper }), /^Created shop\.search[^]*^tool: wrap_shop_search /m)
await noticed(one, 1)
await noticed(two, 1)
step('wrap_create: both clients are told')

const tool = (await two.client.listTools()).tools.find((t) => t.name === 'wrap_shop_search')
assert.equal(tool.title, 'Product search')
assert.deepEqual(Object.keys(tool.inputSchema.properties), ['words', 'page', 'tags', 'kind', 'letters'])
assert.deepEqual(tool.inputSchema.required, ['words'])
assert.deepEqual(tool.annotations, { title: 'Product search', readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true })
step('the generated tool appears')

const table = '## Product search\n\n| ID | Name |\n| --- | --- |\n| 9007199254740993 | Phone |'
assert.equal(await text(two, 'wrap_shop_search', { words: 'red phone' }), table)
await call(two, 'wrap_shop_search', {}, true)
step('the generated tool is called')

const missing = await call(one, 'wrap_run', { id: 'nosuch' }, true)
assert.match(missing.content[0].text, /^WRAPPER_NOT_FOUND: no wrapper has the id "nosuch"/)
step('an error is a result with isError, and says what to do')

assert.match(await text(one, 'wrap_test', { id: 'shop.search', args: { words: 'x' } }), /^Dry run of shop\.search: nothing was sent\./)
step('wrap_test: a dry run')

assert.equal(await text(one, 'wrap_run', { id: 'shop.search', args: { words: 'x' } }), table)
assert.equal(await text(one, 'wrap_run', { id: 'shop.search', args: { words: 'x' }, format: 'json', max_items: 1 }), '[{"id":9007199254740993,"title":"Phone"}]')
const both = await call(one, 'wrap_run', { id: 'shop.search', args: { words: 'x' }, format: 'both' })
assert.equal(both.structuredContent.records[0].title, 'Phone')
step('wrap_run: markdown, json, both')

assert.match(await text(one, 'wrap_update', { wrapper: { ...wrapper, name: 'Renamed' } }), /^Replaced shop\.search/)
await noticed(one, 2)
assert.equal((await one.client.listTools()).tools.find((t) => t.name === 'wrap_shop_search').title, 'Renamed')
step('wrap_update: the tool follows')

await call(one, 'wrap_update', { wrapper: { ...wrapper, name: 'Renamed' } })
const odd = { ...wrapper, inputSchema: { type: 'object', properties: { 'a b': { type: 'string' } } }, request: { method: 'GET', url: upstream + '/search', query: { q: '{{a b}}' } } }
assert.match(await text(one, 'wrap_create', { wrapper: { ...odd, id: 'odd' } }), /Anthropic API/)
assert.deepEqual(await names(one), [...meta, 'wrap_shop_search'].sort())
assert.equal(one.notices.count, 2)
assert.match(await text(one, 'wrap_list', {}), /^odd - .* - tool quarantined: /m)
assert.equal(await text(one, 'wrap_run', { id: 'odd', args: { 'a b': 'x' } }), table)
step('an equal update and a quarantined wrapper change no list')

await call(one, 'wrap_create', { wrapper: { ...wrapper, id: 'run' } })
await noticed(one, 3)
const runs = (await names(one)).filter((n) => n.startsWith('wrap_run'))
assert.equal(runs.length, 2)
assert.match(runs[1], /^wrap_run_[0-9a-f]{6}$/)
assert.equal(await text(one, 'wrap_run', { id: 'run', args: { words: 'x' } }), table)
assert.equal(await text(one, runs[1], { words: 'x' }), table)
step('an id run leaves wrap_run alone')

const long = 'n'.repeat(80)
await call(one, 'wrap_create', { wrapper: { ...wrapper, id: long } })
const cut = (await names(one)).find((n) => n.startsWith('wrap_nnn'))
assert.match(cut, /^[A-Za-z0-9_-]{1,46}$/)
assert.equal(await text(one, cut, { words: 'x' }), table)
step('an id of 80 characters has a name of at most 46')

for (const id of ['shop.search', 'odd', 'run', long]) await call(one, 'wrap_delete', { id })
assert.deepEqual(await names(one), meta)
for (let n = 2; (await names(two)).length > meta.length; n++) await noticed(two, n)
step('wrap_delete: the tools are gone')

await one.client.close()
await two.client.close()
