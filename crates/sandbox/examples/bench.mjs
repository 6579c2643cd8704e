// What Node does in the same place: `vm` in a worker thread, and a process for each call. Prints JSON.
import { spawnSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';

const body = 'return args.n + 1';
const source = `
  const { parentPort } = require('node:worker_threads');
  const vm = require('node:vm');
  parentPort.on('message', async ({ code, args }) => {
    const run = vm.runInContext('(function(args){return(async()=>{' + code + '\\n})()})', vm.createContext({}));
    parentPort.postMessage(JSON.stringify(await run(JSON.parse(args))));
  });`;
const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];
const time = async (count, work) => {
  const times = [];
  for (let n = 0; n < count; n++) {
    const start = process.hrtime.bigint();
    await work(n);
    times.push(Number(process.hrtime.bigint() - start) / 1e3);
  }
  return times;
};

const threads = [0, 1].map(() => new Worker(source, { eval: true }));
const ask = (thread, n) =>
  new Promise((done) => {
    thread.once('message', done);
    thread.postMessage({ code: body, args: JSON.stringify({ n }) });
  });
await time(200, (n) => ask(threads[0], n));
const warm = median(await time(2000, (n) => ask(threads[0], n)));
const started = process.hrtime.bigint();
await Promise.all(threads.map((thread) => time(2000, (n) => ask(thread, n))));
const perSecond = 4000 / (Number(process.hrtime.bigint() - started) / 1e9);
const cold = median(await time(20, async (n) => {
  const thread = new Worker(source, { eval: true });
  await ask(thread, n);
  await thread.terminate();
}));
await Promise.all(threads.map((thread) => thread.terminate()));
const spawned = median(await time(10, (n) => {
  const code = `(async (args) => { ${body} })({n: ${n}}).then((v) => process.stdout.write(JSON.stringify(v)))`;
  spawnSync(process.execPath, ['-e', code]);
}));
console.log(JSON.stringify({ warm, cold, perSecond, spawned }));
