{{- define "codeworkspace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* 52 characters leave room for what templates append. */ -}}
{{- define "codeworkspace.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Cluster-scoped objects carry the namespace: two releases in two namespaces must not take each other's roles. */ -}}
{{- define "codeworkspace.clusterName" -}}
{{- if eq .Release.Namespace (include "codeworkspace.fullname" .) -}}
{{- include "codeworkspace.fullname" . -}}
{{- else -}}
{{- printf "%s-%s" .Release.Namespace (include "codeworkspace.fullname" .) -}}
{{- end -}}
{{- end -}}

{{- define "codeworkspace.selectorLabels" -}}
app.kubernetes.io/name: {{ include "codeworkspace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "codeworkspace.gatewaySelectorLabels" -}}
app.kubernetes.io/name: {{ include "codeworkspace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- /* The Service by which pods of sessions register with the operator. */ -}}
{{- define "codeworkspace.sessionsServiceName" -}}
{{- printf "%s-sessions" (include "codeworkspace.fullname" .) -}}
{{- end -}}

{{- define "codeworkspace.gatewayServiceAccountName" -}}
{{- printf "%s-gateway" (include "codeworkspace.fullname" .) -}}
{{- end -}}

{{- define "codeworkspace.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "codeworkspace.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "codeworkspace.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "codeworkspace.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* An image of the project: (dict "root" $ "name" "python"). */ -}}
{{- define "codeworkspace.ownImage" -}}
{{- printf "%s/%s:%s" .root.Values.images.registry .name (default .root.Chart.AppVersion .root.Values.images.tag) -}}
{{- end -}}

{{- define "codeworkspace.image" -}}
{{- default (include "codeworkspace.ownImage" (dict "root" . "name" "operator")) .Values.image -}}
{{- end -}}

{{- /* The configuration file. */ -}}
{{- define "codeworkspace.configuration" -}}
{{- $configuration := deepCopy .Values.configuration -}}
{{- $reference := default (include "codeworkspace.image" .) $configuration.runnerImage.reference -}}
{{- $_ := set $configuration.runnerImage "reference" $reference -}}
{{- if or .Values.caBundle.configMap .Values.caBundle.secret -}}
{{- $_ := set $configuration.github "caBundle" (printf "/etc/codeworkspace-ca/%s" .Values.caBundle.key) -}}
{{- end -}}
{{- if .Values.cache.enabled -}}
{{- $_ := set $configuration.github "cacheDirectory" "/var/cache/codeworkspace" -}}
{{- $_ := set $configuration.github "cacheBytes" .Values.cache.bytes -}}
{{- end -}}
{{- if .Values.gateway.enabled -}}
{{- $release := dict "namespace" .Release.Namespace "name" (include "codeworkspace.name" .) "instance" .Release.Name -}}
{{- $_ := set $configuration.sessions "release" $release -}}
{{- $_ := set $configuration.sessions "service" (include "codeworkspace.sessionsServiceName" .) -}}
{{- else -}}
{{- $_ := unset $configuration "sessions" -}}
{{- end -}}
{{- toYaml $configuration -}}
{{- end -}}
