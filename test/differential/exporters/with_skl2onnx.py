# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of scikit-learn as skl2onnx writes them."""

import numpy as np
import onnx
from skl2onnx import to_onnx
from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree

import writing
from writing import random

INPUTS, LABELS = random(120, 6), (random(120, 6)[:, 0] > 0).astype(np.int64) + (random(120, 6)[:, 1] > 0.5)
TARGETS = INPUTS @ random(6, seed=1) + np.sin(INPUTS[:, 0])


def model(estimator, labels=None):
    """A function that fits an estimator and writes it; probabilities as a tensor, not as a sequence of maps."""

    def make(path):
        estimator.fit(INPUTS, labels)
        options = {"zipmap": False} if hasattr(estimator, "classes_") else {}
        onnx.save(to_onnx(estimator, INPUTS[:1], options={id(estimator): options} if options else None), path)
        return {"X": random(5, 6, seed=9)}

    return make


def maps(path):
    """A classifier's probabilities as a sequence of maps, which is what skl2onnx writes unless told otherwise."""
    estimator = linear_model.LogisticRegression().fit(INPUTS, LABELS)
    onnx.save(to_onnx(estimator, INPUTS[:1]), path)
    return {"X": random(5, 6, seed=9)}


MODELS = {
    "standard_scaler": model(preprocessing.StandardScaler()),
    "min_max_scaler": model(preprocessing.MinMaxScaler()),
    "robust_scaler": model(preprocessing.RobustScaler()),
    "normalizer": model(preprocessing.Normalizer()),
    "normalizer_l1": model(preprocessing.Normalizer("l1")),
    "normalizer_max": model(preprocessing.Normalizer("max")),
    "binarizer": model(preprocessing.Binarizer(threshold=0.2)),
    "polynomial": model(preprocessing.PolynomialFeatures(2)),
    "pca": model(decomposition.PCA(3)),
    "truncated_svd": model(decomposition.TruncatedSVD(3)),
    "linear_regression": model(linear_model.LinearRegression(), TARGETS),
    "ridge": model(linear_model.Ridge(), TARGETS),
    "logistic_regression": model(linear_model.LogisticRegression(), LABELS),
    "logistic_regression_2": model(linear_model.LogisticRegression(), LABELS > 0),
    "mlp_classifier": model(neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=20), LABELS),
    "mlp_regressor": model(neural_network.MLPRegressor(hidden_layer_sizes=(16, 8), max_iter=20), TARGETS),
    "k_means": model(cluster.KMeans(3, n_init=1)),
    "gaussian_nb": model(naive_bayes.GaussianNB(), LABELS),
    "k_neighbors": model(neighbors.KNeighborsRegressor(3), TARGETS),
    "decision_tree": model(tree.DecisionTreeClassifier(max_depth=4), LABELS),
    "random_forest": model(ensemble.RandomForestClassifier(5, max_depth=4), LABELS),
    "gradient_boosting": model(ensemble.GradientBoostingRegressor(n_estimators=5), TARGETS),
    "svc": model(svm.SVC(), LABELS),
    "svc_2": model(svm.SVC(kernel="poly"), LABELS > 0),
    "svr": model(svm.SVR(), TARGETS),
    "svr_sigmoid": model(svm.SVR(kernel="sigmoid"), TARGETS),
    "one_class": model(svm.OneClassSVM()),
    "scaled_regression": model(pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), linear_model.LinearRegression()), TARGETS),
    "maps": maps,
}

if __name__ == "__main__":
    writing.main(MODELS)
