// Makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
const { createClient } = require('redis');

async function main() {
  const r = await createClient({ url: 'redis://localhost:6380', disableOfflineQueue: true }).connect();
  for (let i = 0; i < 2; i++) {
    const d = await r.sendCommand(['WEIR.TAKE', 'HITS', '3', 'action', 'post', 'user', 'node']);
    console.log(Number(d.allowed)); // version 6 speaks RESP3; with version 5 and RESP2, d is an array
  }
  r.destroy();
}
main();
