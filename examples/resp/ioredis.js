// Makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
const Redis = require('ioredis');

async function main() {
  // protocol: 2 has the five elements; with 3, the default of version 6, add replyMapping: 'resp3'
  const r = new Redis(6380, { protocol: 2, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false });
  for (let i = 0; i < 2; i++) {
    const [allowed, outcome, rule, retryAfter, receipt] = await r.call(
      'WEIR.TAKE', 'HITS', 3, 'action', 'post', 'user', 'ioredis');
    console.log(allowed);
  }
  r.disconnect();
}
main();
