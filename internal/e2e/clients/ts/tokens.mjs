// Reads a JSON array of texts from stdin and prints how many tokens each has, as
// the encoding o200k_base cuts them.
import { text } from 'node:stream/consumers'
import { Tiktoken } from 'js-tiktoken/lite'
import ranks from 'js-tiktoken/ranks/o200k_base'

const encoding = new Tiktoken(ranks)
console.log(JSON.stringify(JSON.parse(await text(process.stdin)).map((t) => encoding.encode(t, [], []).length)))
