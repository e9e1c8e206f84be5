// The `keel` program.
#include "include/keel/program.h"

int main(int argc, char** argv) { return keel::program(argc, argv); }
