<?php
// php try.php HOST:PORT makes a call for each kind of answer, in both ways.
declare(strict_types=1);

require __DIR__ . '/Koala.php';

[$host, $port] = explode(':', $argv[1] ?? '127.0.0.1:9981');

/** One row as a line. */
function told(array $row): string
{
    return "{$row['Str_reason']} err={$row['Err_no']} rule={$row['Ret_code']} captcha={$row['Need_vcode']}/{$row['Vcode_len']}\n";
}

foreach (['curl' => Koala::viaCurl($host, (int) $port), 'socket' => Koala::viaSocket($host, (int) $port)] as $way => $koala) {
    $user = '中文 ' . bin2hex(random_bytes(4)) . '&|+%'; // a user without earlier calls
    $post = ['act' => 'post', 'uid' => $user];
    $login = ['act' => 'login', 'uid' => $user];

    echo "$way\n";
    echo '  alive: ', $koala->alive() ? "yes\n" : "no\n";
    echo '  unknown: ', told($koala->check(['act' => 'read']));
    echo '  blocked: ', told($koala->check(['ip' => '10.9.9.9'] + $post));
    echo '  post: ', told($koala->check($post, true));
    echo '  post again: ', told($koala->check($post, true));
    echo '  log in: ', told($koala->check($login));
    echo '  written: ', $koala->write($login)['err_msg'], "\n";
    echo '  log in again: ', told($koala->check($login));
    foreach ($koala->checkComplete(['ip' => '10.9.9.9'] + $post) as $row) {
        echo '  complete: ', told($row);
    }
    foreach ($koala->checkAll(['a' => $post, 'b' => $login, 'c' => ['ip' => '10.9.9.9'], 'd' => ['act' => 'read']]) as $id => $row) {
        echo "  $id of four: ", told($row);
    }
}
