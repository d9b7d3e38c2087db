<?php
// Makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
$r = new Redis();
$r->connect('localhost', 6380);
$r->setOption(Redis::OPT_MAX_RETRIES, 0);
for ($i = 0; $i < 2; $i++) {
    [$allowed] = $r->rawCommand('WEIR.TAKE', 'HITS', 3, 'action', 'post', 'user', 'php');
    echo $allowed, "\n";
}
