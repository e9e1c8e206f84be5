/* Layer norm of two rows, forward and backward: how a C program uses keel/norm.h. It prints y, dx and
 * dbias, and fails if they are not what arithmetic by hand gives. */
#include <keel/norm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 2, WIDTH = 4 };

static const int64_t rows_of[] = {ROWS}, matrix_of[] = {ROWS, WIDTH}, row_of[] = {WIDTH};
static const keel_type matrix = {KEEL_F32, 2, matrix_of}, row = {KEEL_F32, 1, row_of},
                       column = {KEEL_F32, 1, rows_of};

static void expect(int status) {
  if (status == KEEL_OK) return;
  fprintf(stderr, "keel: %s\n", keel_error());
  exit(status);
}

/* Prepares an op and runs it once. A program that calls an op often keeps plan and workspace. */
static void run(const char* op, const char* attributes, const keel_type* types, int count,
                const void* const* inputs, void* const* outputs) {
  const keel_request request = {
      .op = op, .attributes = attributes, .count = count, .inputs = types};
  keel_plan* plan = NULL;
  expect(keel_norm_prepare(&request, &plan));
  const size_t unit = 64, bytes = ((size_t)keel_plan_workspace(plan) + unit) / unit * unit;
  void* workspace = aligned_alloc(unit, bytes);
  expect(keel_plan_run(plan, inputs, outputs, workspace, NULL));
  free(workspace);
  keel_plan_free(plan);
}

static int differ(float a, double b) { return !(fabs(a - b) < 1e-5); }

int main(void) {
  const float x[] = {1, 2, 3, 4, 0, 0, 1, 1}, gain[] = {1, 1, 1, 1}, bias[] = {0, 0, 0, 0};
  const float dy[] = {1, 0, 0, 0, 0, 0, 0, 1};
  float y[ROWS * WIDTH], mean[ROWS], rstd[ROWS], dx[ROWS * WIDTH], dgain[WIDTH], dbias[WIDTH];

  const keel_type forward[] = {matrix, row, row};
  run("layer_norm", "eps=0", forward, 3, (const void*[]){x, gain, bias}, (void*[]){y, mean, rstd});
  const keel_type backward[] = {matrix, row, column, column, matrix};
  run("layer_norm_backward", "eps=0 wants_dbias=true", backward, 5,
      (const void*[]){x, gain, mean, rstd, dy}, (void*[]){dx, dgain, dbias});

  printf("%s\n", keel_info());
  for (int i = 0; i < ROWS * WIDTH; ++i) printf("y %9.6f  dx %9.6f\n", y[i], dx[i]);
  /* Row 0: mean 2.5, variance 1.25. Row 1: mean 0.5, variance 0.25. */
  const double s = sqrt(1.25), first = 1 / s * (1 - 0.25 - 2.25 / 1.25 / 4);
  const int wrong = differ(y[0], -1.5 / s) || differ(y[4], -1) || differ(y[7], 1) ||
                    differ(dx[0], first) || differ(dx[7], 2 * (1 - 0.25 - 0.25)) ||
                    differ(dbias[0], 1) || differ(dbias[1], 0) || differ(dgain[0], -1.5 / s);
  if (wrong) fprintf(stderr, "expected other numbers\n");
  return wrong;
}
