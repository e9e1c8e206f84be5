/* keel's norms for other programs: each op of keel's list of norms, forward and backward, on arrays
 * that the caller owns.
 *
 *     keel_type types[3] = {{KEEL_F32, 2, sizes}, {KEEL_F32, 1, width}, {KEEL_F32, 1, width}};
 *     keel_request request = {.op = "layer_norm", .attributes = "eps=1e-06",
 *                             .count = 3, .inputs = types};
 *     keel_plan* plan = NULL;
 *     if (keel_norm_prepare(&request, &plan)) puts(keel_error());
 *     const void* inputs[3] = {x, gain, bias};
 *     void* outputs[3] = {y, mean, rstd};
 *     keel_plan_run(plan, inputs, outputs, workspace, NULL);
 *     keel_plan_free(plan);
 *
 * A plan is an op with attributes and the types of its inputs, on a device. It is immutable: any
 * number of threads may run one plan at once, each with arrays and a workspace of its own. The
 * library starts no thread, makes no stream, keeps no memory between calls but the plans, never
 * ends the process, and throws nothing.
 *
 * Formulas, inputs and outputs by place, attributes and errors of an op stand in keel's header
 * src/ops/norm/NAME.h, and in src/ops/column_moments.h and src/ops/column_gradient_sums.h.
 * keel_norm_ops() lists the ops.
 *
 * Four ops are a sum and a norm in one run, which reads what it has just written from a cache.
 * add_layer_norm and add_rms_norm (x, residual, gain, bias) give the outputs of the norm of
 * s = x + residual, and s as the last output, sum. Their backwards take the inputs of the norm's
 * backward, with sum in the place of x, and then dsum, the gradient of sum, which may be absent;
 * dx = norm'(dy) + dsum is the gradient of x and of residual. Types and shapes of x and residual,
 * and of sum, dy and dsum, are equal. The bits are those of the two ops one after the other: in
 * bfloat16 s is rounded before it is normalized, and dx before dsum is added and after that. They
 * run on the CPU only.
 *
 * Arrays are contiguous, with the last axis fastest, and aligned to their element;
 * keel_plan_run_strided also takes arrays of which only the rows are. Float32 arrays
 * run on kernels in SIMD, for which the bounds of keel's docs/numerics.md hold; results have the
 * same bits for any number of threads. Float64 arrays run on keel's reference backend, one thread,
 * each op computed from its definition. All floating arrays of a call have one type, except for
 * sums over columns, which are float64 always, and for bfloat16: x and dy may both be that, and y
 * or dx is then bfloat16, too, all else float32. The kernels widen and round in registers; the
 * bits are those of the same op in float32, rounded once, to the nearest, ties to even.
 *
 * On a GPU, a plan of KEEL_DEVICE_CUDA takes float32 and bfloat16. Its arrays and its workspace lie
 * in the memory of that device, float32 arrays aligned to 16 bytes and those of bfloat16 to 8.
 * keel_plan_run starts kernels on the caller's stream and returns; it neither waits nor allocates
 * there, so it may be captured into a CUDA graph. The kernels are in libkeel_norm_cuda.so, which
 * the first such plan loads. */
#pragma once

#include <stdint.h>

#if defined(__GNUC__)
#define KEEL_API __attribute__((visibility("default")))
#else
#define KEEL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when a function or structure changes its meaning.
 * 2: keel_norm_prepare takes a keel_request with a device; keel_executor has a stream. */
#define KEEL_ABI 2

/* What a function returns. For all but KEEL_OK, keel_error() says more. */
enum keel_status {
  KEEL_OK = 0,
  KEEL_CUDA_FAILED = 1, /* a call of CUDA failed; the text has CUDA's own words */
  KEEL_USAGE = 2,       /* an unknown op or attribute, types that do not fit, a missing array, or
                           one that does not lie on the device; threads that left work undone */
  KEEL_MEMORY = 5,      /* an allocation failed, or a size is too large to count */
  KEEL_UNSUPPORTED = 7, /* no kernel takes this op with these types, or the device is not there:
                           no GPU, no driver, or a keel_norm without CUDA */
  KEEL_INTERNAL = 70    /* a bug of keel */
};

/* Element types. KEEL_ABSENT stands for an input that is not given, such as a mask. */
enum keel_dtype {
  KEEL_ABSENT = -1,
  KEEL_F32 = 0,
  KEEL_F64 = 1,
  KEEL_BF16 = 2, /* of x, dy, y and dx; weight_norm does not take it */
  KEEL_I32 = 3,
  KEEL_U8 = 4
};

/* Element type and shape of an array. A scalar has rank 0; at most 8 axes. */
typedef struct keel_type {
  int32_t dtype; /* enum keel_dtype */
  int32_t rank;
  const int64_t* sizes;
} keel_type;

/* Where the arrays of a plan lie and its kernels run. `index` counts GPUs as CUDA does, with
 * CUDA_VISIBLE_DEVICES; it is not read for KEEL_DEVICE_CPU. */
enum keel_device_kind { KEEL_DEVICE_CPU = 0, KEEL_DEVICE_CUDA = 1 };
typedef struct keel_device {
  int32_t kind; /* enum keel_device_kind */
  int32_t index;
} keel_device;

/* What a plan is made of. A member that is not set is 0: the CPU, default attributes.
 * `attributes` is "name=value name=value" in any order; attributes that are not named keep their
 * defaults. `inputs` has the types of the first `count` inputs; the others are absent. */
typedef struct keel_request {
  const char* op;
  const char* attributes; /* NULL stands for "" */
  keel_device device;
  int32_t count;
  const keel_type* inputs;
} keel_request;

/* What a run works on: on the CPU the caller's threads, on a GPU a stream. run() calls
 * work(argument, first, last) for ranges [first, last) that together are [0, blocks), each block
 * once, on any threads, and returns when all calls have returned; where blocks are left,
 * keel_plan_run gives KEEL_USAGE. `threads` says how many may work at once; with 1, run() is not
 * called and may be NULL. `stream` is a cudaStream_t of the plan's device; NULL is CUDA's default
 * stream. */
typedef struct keel_executor {
  void (*run)(void* context, int64_t blocks,
              void (*work)(void* argument, int64_t first, int64_t last), void* argument);
  void* context;
  int32_t threads;
  void* stream;
} keel_executor;

/* The run() of an executor whose threads are those of a function `for`(begin, end, grain, body,
 * argument), which calls body(first, last, argument) for ranges that together are [begin, end), as
 * torch_parallel_for of PyTorch does. `context` points to a keel_parallel_for. Where `for` returns
 * another number than 0, keel_plan_run gives KEEL_USAGE. */
typedef struct keel_parallel_for {
  int32_t (*call)(int64_t begin, int64_t end, int64_t grain,
                  void (*body)(int64_t first, int64_t last, void* argument), void* argument);
} keel_parallel_for;
KEEL_API void keel_run_parallel_for(void* context, int64_t blocks,
                                    void (*work)(void* argument, int64_t first, int64_t last),
                                    void* argument);

typedef struct keel_plan keel_plan;

/* KEEL_ABI of the library that is loaded. */
KEEL_API int32_t keel_abi(void);
/* One line on version and instruction set. NULL, and a text in keel_error(), without memory. */
KEEL_API const char* keel_info(void);
/* What the last call of this thread that failed says, in one line: "[layer_norm] gain: expected
 * (64), got (32)". It stays valid until this thread's next call that fails. */
KEEL_API const char* keel_error(void);
/* All ops, one a line: its name, a tab, the names of its inputs by place with commas between, a
 * tab, and its default attributes. The library owns the text. NULL, and a text in
 * keel_error(), without memory. */
KEEL_API const char* keel_norm_ops(void);
/* Facts of all ops, one a line, with a tab between its name, the names of its outputs by place with
 * commas between, its gradient (exact, detached, surrogate or none), and what shares a statistic in
 * a norm of x (rows, parts, sequences, columns, elements or none). The output next_S is the next
 * value of the state that the input S reads, of the forward or of the backward. The library owns
 * the text. NULL, and a text in keel_error(), without memory. */
KEEL_API const char* keel_norm_facts(void);

/* Makes a plan. On failure *plan is NULL. */
KEEL_API int keel_norm_prepare(const keel_request* request, keel_plan** plan);
/* NULL is allowed. */
KEEL_API void keel_plan_free(keel_plan* plan);

KEEL_API int32_t keel_plan_outputs(const keel_plan* plan);
/* The type of an output; the plan owns its sizes. An output that does not apply, such as the
 * gradient of an absent gain, has the shape (0). For a place that the op does not have, dtype is
 * KEEL_ABSENT. */
KEEL_API keel_type keel_plan_output(const keel_plan* plan, int32_t place);
/* Bytes of the workspace that a run needs on the plan's device, aligned to 64 bytes. 0: none. */
KEEL_API int64_t keel_plan_workspace(const keel_plan* plan);

/* Runs the op. `inputs` has an address for each input of the request, `outputs` one for each
 * output; addresses of absent arrays, and of arrays without elements, are ignored. Outputs may not
 * overlap inputs or each other. `executor` may be NULL: the calling thread does everything, or the
 * default stream. What fails on a GPU after this has returned, CUDA reports to a later call. */
KEEL_API int keel_plan_run(const keel_plan* plan, const void* const* inputs, void* const* outputs,
                           void* workspace, const keel_executor* executor);

/* The arrays of a run, with their strides: for each input of the request, and for each output, an
 * address and a table, which has for each axis of the array's type the distance of neighbours along
 * it, in elements. The address is that of the element whose indices are all 0; strides may be 0 or
 * negative, and those of axes of size 1 are not read. A table, or a member of strides, that is NULL
 * stands for contiguous arrays. */
typedef struct keel_arrays {
  const void* const* inputs;
  void* const* outputs;
  const int64_t* const* input_strides;
  const int64_t* const* output_strides;
} keel_arrays;

/* Runs the op on arrays with strides, reads and writes them exactly where these say, and gives the
 * bits that keel_plan_run gives for contiguous copies. Rows are copied a few at a time, through
 * memory of at most 192 KiB a thread that the run allocates; there is no copy of an array.
 *
 *     const int64_t of_q[3] = {tokens * 3 * width, 3 * width, 1};  q in (batch, tokens, 3 width)
 *     const int64_t* strides[3] = {of_q, NULL, NULL};
 *     const keel_arrays arrays = {inputs, outputs, strides, NULL};
 *     keel_plan_run_strided(plan, &arrays, workspace, NULL);
 *
 * Arrays of the shape of x (x, dy, y, dx) take strides, in float32 and bfloat16 on the CPU, in
 * layer_norm, rms_norm, ada_norm, detach_norm, scale_norm, group_scaling and their backwards, and
 * in seed_norm. The elements of a row, over the axes of the norm or of a group of group_scaling,
 * are neighbours in order; a row has at most 16384 elements. All other arrays are contiguous.
 *
 * KEEL_USAGE, and nothing is written: strides that the op does not take; elements that lie further
 * apart than 2^62 bytes; an output whose elements do not each have a place of their own, that is,
 * a stride shorter than what the elements along the shorter ones span; an output that shares a
 * byte with an input or another output. KEEL_MEMORY: there is no memory for the rows. */
KEEL_API int keel_plan_run_strided(const keel_plan* plan, const keel_arrays* arrays,
                                   void* workspace, const keel_executor* executor);
/* Whether keel_plan_run_strided takes input `input` of the request with these strides: 1, or 0, so
 * that the caller has to copy it. 0 also for what is no input, and for strides that are too
 * long. */
KEEL_API int32_t keel_plan_takes_strides(const keel_plan* plan, int32_t input,
                                         const int64_t* strides);

#ifdef __cplusplus
}
#endif
