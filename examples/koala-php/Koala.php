<?php
declare(strict_types=1);

/**
 * Koala calls a service with koala's API. An answer is a row: Err_no 0 means that
 * the action may happen, Need_vcode 1 that the user must solve a captcha with
 * Vcode_len letters. Ret_code is the number of the rule that decided.
 */
final class Koala
{
    private const TIMEOUT = 3; // seconds

    /** $send is how to get a URI's answer: viaCurl or viaSocket. */
    private function __construct(private Closure $send)
    {
    }

    /** The common way. */
    public static function viaCurl(string $host, int $port): self
    {
        return new self(function (string $uri) use ($host, $port): string {
            $curl = curl_init("http://$host:$port$uri");
            curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => self::TIMEOUT]);
            $body = curl_exec($curl);
            if ($body === false) {
                throw new RuntimeException("$uri: " . curl_error($curl));
            }
            return $body;
        });
    }

    /** The old way: a bare socket, and a request that names no host. */
    public static function viaSocket(string $host, int $port): self
    {
        return new self(function (string $uri) use ($host, $port): string {
            $socket = stream_socket_client("tcp://$host:$port", $errno, $error, self::TIMEOUT);
            if ($socket === false) {
                throw new RuntimeException("$uri: $error");
            }
            stream_set_timeout($socket, self::TIMEOUT);
            fwrite($socket, "GET $uri HTTP/1.1\r\nAccept: */*\r\n\r\n");
            $answer = stream_get_contents($socket); // to the end, because koala closes the connection
            fclose($socket);
            return explode("\r\n\r\n", $answer, 2)[1] ?? '';
        });
    }

    /** May this happen? With $write it is counted in the same step, if it may. */
    public function check(array $action, bool $write = false): array
    {
        return $this->ask('/rule/browse', $action + ($write ? ['_writeThrough' => 'yes'] : []));
    }

    /** The rows of all rules that say no; one row that says yes otherwise. */
    public function checkComplete(array $action): array
    {
        return $this->ask('/rule/browse_complete', $action);
    }

    /** check for several actions: the rows by the keys of $actions. */
    public function checkAll(array $actions): array
    {
        $jobs = [];
        foreach ($actions as $id => $action) {
            $jobs[] = ['Id' => (string) $id, 'Arg' => urlencode(http_build_query($action))];
        }
        return array_column($this->ask('/multi/browse', ['argsJson' => json_encode($jobs)]), 'Result', 'Id');
    }

    /** This has happened: count it. */
    public function write(array $action): array
    {
        return $this->ask('/rule/update', $action);
    }

    public function alive(): bool
    {
        return $this->ask('/monitor/alive', [])['errno'] === 0;
    }

    /** An answer that is not JSON is an exception, not leave to go on. */
    private function ask(string $path, array $parameters): array
    {
        $uri = $path . '?' . http_build_query($parameters);
        return json_decode(($this->send)($uri), true, flags: JSON_THROW_ON_ERROR);
    }
}
