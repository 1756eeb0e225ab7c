/* graph_f64.c - the graph in double, for the checks of gradients. */
#define DPI_TRAIN_F64
#define GRAPH_NAME dpi_graph_f64
#include "train/graph_tmpl.h"
