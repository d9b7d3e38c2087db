# Makes two takes of 3 of 5 posts an hour, and prints 1 and 0: the second does not fit.
import redis

r = redis.Redis(port=6380, retry=None)
for _ in range(2):
    allowed, outcome, rule, retry_after, receipt = r.execute_command(
        "WEIR.TAKE", "HITS", 3, "action", "post", "user", "python")
    print(allowed)
