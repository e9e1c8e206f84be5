// cuDNN's part. Sizes that it does not support keel computes by products of its own kernels, so
// here no sizes are supported: those kernels are what has to be tested.
#include <cudnn.h>

#include "tests/ptx/cuda/device.h"

// The functions that make and destroy an object of which nothing is known here.
#define KEEL_PTX_OBJECT(Create, Destroy, Handle)         \
  KEEL_PTX_API cudnnStatus_t Create(Handle* handle) {    \
    *handle = reinterpret_cast<Handle>(new int(0));      \
    return CUDNN_STATUS_SUCCESS;                         \
  }                                                      \
  KEEL_PTX_API cudnnStatus_t Destroy(Handle handle) {    \
    delete reinterpret_cast<int*>(handle);               \
    return CUDNN_STATUS_SUCCESS;                         \
  }

KEEL_PTX_OBJECT(cudnnCreate, cudnnDestroy, cudnnHandle_t)
KEEL_PTX_OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor,
                cudnnTensorDescriptor_t)
KEEL_PTX_OBJECT(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor,
                cudnnFilterDescriptor_t)
KEEL_PTX_OBJECT(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor,
                cudnnConvolutionDescriptor_t)

KEEL_PTX_API const char* cudnnGetErrorString(cudnnStatus_t) { return "not computed here"; }
KEEL_PTX_API cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return CUDNN_STATUS_SUCCESS;
}

KEEL_PTX_API cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t, cudnnTensorFormat_t,
                                                      cudnnDataType_t, int, int, int, int) {
  return CUDNN_STATUS_SUCCESS;
}
KEEL_PTX_API cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t,
                                                      cudnnTensorFormat_t, int, int, int, int) {
  return CUDNN_STATUS_SUCCESS;
}
KEEL_PTX_API cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t, int, int,
                                                           int, int, int, int,
                                                           cudnnConvolutionMode_t,
                                                           cudnnDataType_t) {
  return CUDNN_STATUS_SUCCESS;
}
KEEL_PTX_API cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t,
                                                       cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}

KEEL_PTX_API cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t, std::size_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
KEEL_PTX_API cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t, std::size_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
KEEL_PTX_API cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
    cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgo_t, std::size_t*) {
  return CUDNN_STATUS_NOT_SUPPORTED;
}
