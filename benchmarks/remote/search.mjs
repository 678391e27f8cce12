// MiniSearch over a corpus in BEIR's layout, behind pipes or, with a port, behind HTTP.
//   node search.mjs CORPUS NOTES [PORT]
// NOTES gets a line for each query: its identifier and the milliseconds that the engine took for it.
import {createReadStream, openSync, writeSync} from 'node:fs';
import {createServer} from 'node:http';
import {createInterface} from 'node:readline';
import MiniSearch from 'minisearch';

const [corpus, notes, port] = process.argv.slice(2);
const log = openSync(notes, 'a');
const engine = new MiniSearch({fields: ['title', 'text'], idField: '_id'});
for await (const line of createInterface({input: createReadStream(corpus)})) engine.add(JSON.parse(line));

function answer({id, text, k}) {
  const began = performance.now();
  const results = engine.search(text).slice(0, k).map(({id, score}) => ({id, score}));
  writeSync(log, `${id} ${(performance.now() - began).toFixed(4)}\n`);
  return {id, results};
}

if (port === undefined) {
  for await (const line of createInterface({input: process.stdin})) {
    console.log(JSON.stringify(answer(JSON.parse(line))));
  }
} else {
  createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(answer(JSON.parse(body))));
  }).listen(Number(port), '127.0.0.1', function () { console.log(this.address().port); });
}
