// SPDX-License-Identifier: Apache-2.0
#ifndef TRAINER_KERNELS_H
#define TRAINER_KERNELS_H

// What trainer.c computes: C functions that the simulated device runs in the order of the
// stream.

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { OPERANDS = 6 };

struct launch {
    float *a[OPERANDS];
    size_t rows, columns; // of the activations
    int step;
};

static float *row(float *matrix, size_t columns, size_t at)
{
    return matrix + columns * at;
}

// h = x W + b
static void run_linear(void *argument)
{
    const struct launch *k = argument;
    for (size_t r = 0; r < k->rows; r++) {
        float *h = row(k->a[0], k->columns, r), *x = row(k->a[1], k->columns, r);
        memcpy(h, k->a[3], k->columns * sizeof(float));
        for (size_t i = 0; i < k->columns; i++)
            for (size_t j = 0; j < k->columns; j++)
                h[j] += x[i] * row(k->a[2], k->columns, i)[j];
    }
}

// y = x + relu(h)
static void run_relu(void *argument)
{
    const struct launch *k = argument;
    float *y = k->a[0], *x = k->a[1], *h = k->a[2];
    for (size_t i = 0; i < k->rows * k->columns; i++)
        y[i] = x[i] + (h[i] > 0 ? h[i] : 0);
}

// loss = mean (y - t)^2, and dy
static void run_loss(void *argument)
{
    const struct launch *k = argument;
    float *loss = k->a[0], *dy = k->a[1], *y = k->a[2], *t = k->a[3];
    size_t count = k->rows * k->columns;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        float d = y[i] - t[i];
        sum += (double)d * d;
        dy[i] = 2 * d / (float)count;
    }
    *loss = (float)(sum / (double)count);
}

// dh = dy where h > 0
static void run_relu_back(void *argument)
{
    const struct launch *k = argument;
    float *dh = k->a[0], *dy = k->a[1], *h = k->a[2];
    for (size_t i = 0; i < k->rows * k->columns; i++)
        dh[i] = h[i] > 0 ? dy[i] : 0;
}

// dx = dy + dh W^T
static void run_input_back(void *argument)
{
    const struct launch *k = argument;
    for (size_t r = 0; r < k->rows; r++) {
        float *dx = row(k->a[0], k->columns, r), *dy = row(k->a[1], k->columns, r);
        float *dh = row(k->a[2], k->columns, r);
        for (size_t i = 0; i < k->columns; i++) {
            float sum = dy[i];
            for (size_t j = 0; j < k->columns; j++)
                sum += dh[j] * row(k->a[3], k->columns, i)[j];
            dx[i] = sum;
        }
    }
}

// dW = x^T dh, db = sum of dh
static void run_weight_back(void *argument)
{
    const struct launch *k = argument;
    memset(k->a[0], 0, k->columns * k->columns * sizeof(float));
    memset(k->a[1], 0, k->columns * sizeof(float));
    for (size_t r = 0; r < k->rows; r++) {
        float *dh = row(k->a[2], k->columns, r), *x = row(k->a[3], k->columns, r);
        for (size_t j = 0; j < k->columns; j++)
            k->a[1][j] += dh[j];
        for (size_t i = 0; i < k->columns; i++)
            for (size_t j = 0; j < k->columns; j++)
                row(k->a[0], k->columns, i)[j] += x[i] * dh[j];
    }
}

static void run_adamw(void *argument)
{
    const struct launch *k = argument;
    const float rate = 0.01F, decay = 0.01F, beta1 = 0.9F, beta2 = 0.999F;
    float *p = k->a[0], *g = k->a[1], *m = k->a[2], *v = k->a[3];
    float unbias1 = 1 - powf(beta1, (float)k->step);
    float unbias2 = 1 - powf(beta2, (float)k->step);
    for (size_t i = 0; i < k->rows * k->columns; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        p[i] -= rate * decay * p[i];
        p[i] -= rate * (m[i] / unbias1) / (sqrtf(v[i] / unbias2) + 1e-8F);
    }
}

#endif
