<?php
// Makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
require 'Predis/Autoloader.php'; // with Composer: vendor/autoload.php
Predis\Autoloader::register();

$r = new Predis\Client(['port' => 6380]);
for ($i = 0; $i < 2; $i++) {
    [$allowed] = $r->executeRaw(['WEIR.TAKE', 'HITS', '3', 'action', 'post', 'user', 'predis']);
    echo $allowed, "\n";
}
