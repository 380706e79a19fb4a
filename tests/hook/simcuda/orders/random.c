// SPDX-License-Identifier: Apache-2.0
// Programs drawn at random, against the model. random [PROGRAMS [SEEDS [TIMES [SEED]]]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "generate.h"
#include "runs.h"

enum { TEXT = 256, SHOWN = 8, SEEDS_MORE = 1024 };

// Of these some outcomes are rare: work of one stream and another's must alternate while
// somebody waits for both.
static const char *const hard[] = {
    "copy D0 E0; a copy P0 D0; 1 copy P0 D0; x E0+=4; 1 D0+=5; 1 copy E0 D0; a record f; "
    "a memset E0 8; show D0; show E0; show P0",
};

enum { HARD = sizeof(hard) / sizeof(*hard) };

static unsigned long argument(int argc, char *argv[], int which, unsigned long otherwise)
{
    return argc > which ? strtoul(argv[which], NULL, 10) : otherwise;
}

struct sums {
    unsigned long outcomes, seen, wrong, verdicts, racing, large;
};

static void add(struct sums *sums, const struct tried *tried, unsigned *shown)
{
    sums->racing += tried->model.races != 0;
    sums->wrong += tried->wrong_outcomes != 0;
    sums->verdicts += tried->wrong_verdicts != 0;
    for (int i = 0; i < tried->model.outcome_count; i++) {
        sums->outcomes++;
        sums->seen += tried->seen[i];
    }
    if (*shown < SHOWN && !tried_judge(tried, true))
        ++*shown;
}

int main(int argc, char *argv[])
{
    const size_t count = argument(argc, argv, 1, 300);
    const unsigned seeds = (unsigned)argument(argc, argv, 2, 24);
    const unsigned times = (unsigned)argument(argc, argv, 3, 4);
    const unsigned long day = (unsigned long)time(NULL) / 86400;
    const unsigned long seed = argument(argc, argv, 4, day);
    struct tried *tried = tried_create(count);
    char(*texts)[TEXT] = calloc(count, sizeof(*texts));
    struct sums sums = {0};
    unsigned shown = 0;

    if (!tried || !texts)
        return 1;
    for (size_t i = 0; i < count; i++) {
        if (i < HARD)
            (void)snprintf(texts[i], sizeof(texts[i]), "%s", hard[i]);
        else
            generate(seed, i, texts[i], sizeof(texts[i]));
        program_parse(&tried[i].program, texts[i]);
        if (!model_explore(&tried[i].program, false, &tried[i].model)) {
            sums.large++;
            tried[i].program.count = 0;
            memset(&tried[i].model, 0, sizeof(tried[i].model));
        }
    }

    const bool ran = tried_run(tried, count, seed, seeds, times);
    const unsigned long unseen =
        ran ? tried_cover(tried, count, seed + seeds, SEEDS_MORE) : 1;
    const bool repeats = tried_repeat(tried, count, seed);

    for (size_t i = 0; i < count; i++)
        if (tried[i].program.count)
            add(&sums, &tried[i], &shown);
    printf("1..4\n# seed %lu: %zu programs, %lu left out as too large, %lu with a race; "
           "%lu outcomes, %lu of them seen\n",
           seed, count, sums.large, sums.racing, sums.outcomes, sums.seen);
    printf("%sok 1 - every outcome is allowed\n", ran && !sums.wrong ? "" : "not ");
    printf("%sok 2 - the checker agrees with the model\n", sums.verdicts ? "not " : "");
    printf("%sok 3 - every outcome that is allowed is some seed's\n",
           unseen ? "not " : "");
    printf("%sok 4 - a seed's order repeats\n", repeats ? "" : "not ");
    free(texts);
    return ran && repeats && !unseen && !sums.wrong && !sums.verdicts ? 0 : 1;
}
